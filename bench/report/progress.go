package report

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress is a bar for long work. It appears only where it goes to a terminal, and steps aside for what is written
// through Around, so a table on the same terminal stays whole. All methods may be called from any goroutine.
type Progress struct {
	mu   sync.Mutex
	bar  *progressbar.ProgressBar // nil where nothing is to be seen
	done bool
}

// refreshInterval bounds how often the bar is drawn: the process may be measuring.
const refreshInterval = 200 * time.Millisecond

// NewProgress returns a bar of total steps on f, usually standard error.
func NewProgress(f *os.File, total int64, description string) *Progress {
	return newProgress(f, term.IsTerminal(int(f.Fd())), total, description)
}

// newProgress is NewProgress with the terminal question answered.
func newProgress(w io.Writer, visible bool, total int64, description string) *Progress {
	p := &Progress{}
	if visible {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(description),
			progressbar.OptionSetWidth(24),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(refreshInterval),
		)
	}
	return p
}

// Set moves the bar to done steps.
func (p *Progress) Set(done int64) {
	p.do(func(b *progressbar.ProgressBar) { _ = b.Set64(done) }) // a terminal that went away is not this program's trouble
}

// Max changes how many steps there are.
func (p *Progress) Max(total int64) { p.do(func(b *progressbar.ProgressBar) { b.ChangeMax64(total) }) }

// Describe says what is going on now.
func (p *Progress) Describe(text string) {
	p.do(func(b *progressbar.ProgressBar) { b.Describe(text) })
}

// Close takes the bar off the terminal.
func (p *Progress) Close() {
	p.do(func(b *progressbar.ProgressBar) { _ = b.Clear() })
	p.mu.Lock()
	p.done = true
	p.mu.Unlock()
}

// do works on the bar while nothing else writes.
func (p *Progress) do(f func(b *progressbar.ProgressBar)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && !p.done {
		f(p.bar)
	}
}

// Around returns a writer to w that takes the bar away before each Write. The bar comes back with the next Set; to draw
// it at once would make it flicker between the lines of one burst.
func (p *Progress) Around(w io.Writer) io.Writer { return &aside{progress: p, w: w} }

// aside is the writer that Around returns.
type aside struct {
	progress *Progress
	w        io.Writer
}

// Write writes text where the bar was.
func (a *aside) Write(text []byte) (int, error) {
	a.progress.mu.Lock()
	defer a.progress.mu.Unlock()
	if a.progress.bar != nil && !a.progress.done {
		_ = a.progress.bar.Clear()
	}
	return a.w.Write(text)
}
