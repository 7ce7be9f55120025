package load

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms are the distributions behind a Result. They are what makes results of several processes mergeable
// exactly: quantiles cannot be averaged, counts can be added. In JSON each is the compressed V2 encoding of
// HdrHistogram in base64, which other tools read.
type Histograms struct {
	Latency  Histogram              `json:"latency"`
	Reject   Histogram              `json:"reject"`
	Lateness Histogram              `json:"lateness"`
	Parts    [timingParts]Histogram `json:"parts"`
}

// Histogram is an HdrHistogram of nanoseconds that travels in JSON.
type Histogram struct {
	*hdrhistogram.Histogram
}

// MarshalText encodes the histogram; one that was never filled is empty text.
func (h Histogram) MarshalText() ([]byte, error) {
	if h.Histogram == nil {
		return nil, nil
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	return text, nil
}

// UnmarshalText decodes what MarshalText wrote.
func (h *Histogram) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		h.Histogram = nil
		return nil
	}
	decoded, err := hdrhistogram.Decode(text)
	if err != nil {
		return fmt.Errorf("decode histogram: %w (it must be a compressed V2 HdrHistogram in base64)", err)
	}
	h.Histogram = decoded
	return nil
}

// merge adds the counts of other, exactly or not at all.
func (h *Histogram) merge(other Histogram) error {
	if other.Histogram == nil {
		return nil
	}
	if h.Histogram == nil {
		h.Histogram = newHistogram()
	}
	if dropped := h.Merge(other.Histogram); dropped != 0 {
		return fmt.Errorf("merge histograms: %d values are out of range: both must come from this version of the generator", dropped)
	}
	return nil
}

// merge adds the counts of other to every histogram.
func (h *Histograms) merge(other *Histograms) error {
	pairs := []struct {
		into *Histogram
		from Histogram
	}{{&h.Latency, other.Latency}, {&h.Reject, other.Reject}, {&h.Lateness, other.Lateness}}
	for i := range h.Parts {
		pairs = append(pairs, struct {
			into *Histogram
			from Histogram
		}{&h.Parts[i], other.Parts[i]})
	}
	for _, p := range pairs {
		if err := p.into.merge(p.from); err != nil {
			return err
		}
	}
	return nil
}

// quantile is ValueAtQuantile of a histogram that may be empty.
func (h Histogram) quantile(percent float64) int64 {
	if h.Histogram == nil || h.TotalCount() == 0 {
		return 0
	}
	return h.ValueAtQuantile(percent)
}

// max is Max of a histogram that may be empty.
func (h Histogram) max() int64 {
	if h.Histogram == nil || h.TotalCount() == 0 {
		return 0
	}
	return h.Max()
}

// mean is Mean of a histogram that may be empty.
func (h Histogram) mean() float64 {
	if h.Histogram == nil || h.TotalCount() == 0 {
		return 0
	}
	return h.Mean()
}
