package capture

import "strconv"

// gap is what happened since the last packet in the file. The next one tells of it.
type gap struct {
	missed  uint64 // not captured
	lost    uint64 // at reception
	refused uint64 // sent, and refused only later: which of those before they were is not known
}

// commentMax is longer than any comment.
const commentMax = 320

// remark appends what there is to say of a packet and of the gap before it, if anything.
func (g *gap) remark(b []byte, refused bool) []byte {
	if refused {
		b = append(b, "dropped: the port refused to send it. "...)
	}
	b = count(b, "Before it: not captured, since the ring was full: ", g.missed)
	b = count(b, "Before it: lost at reception: ", g.lost)
	b = count(b, "Of those sent before it, refused by the kernel: ", g.refused)
	return b[:max(len(b)-1, 0)]
}

// count appends what is counted, unless there is none.
func count(b []byte, what string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return append(strconv.AppendUint(append(b, what...), n, 10), ". "...)
}
