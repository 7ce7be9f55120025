package runtime

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzPullAnswer reads answers from anybody: what is taken is the same bytes, item by item, and never more of them than were asked for.
func FuzzPullAnswer(f *testing.F) {
	for _, seed := range []string{"", "\x00", "\x01", "\x02", "\x00\x01a\x00\x02bc", "\x01\x01a", "\x00\x05a", "\x00\x80", "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		f.Add([]byte(seed), int64(3))
	}
	f.Fuzz(func(t *testing.T, answer []byte, wanted int64) {
		p := &Pull{reply: answer}
		if p.Request(wanted) != nil {
			return
		}
		if p.take(0) != nil {
			if p.rest != nil || p.books.Position() != 0 {
				t.Fatal("refused, and taken all the same")
			}
			return
		}
		count, again := 0, answer[:1:1]
		for len(p.rest) > 0 {
			item, rest, ok := cutItem(p.rest)
			if !ok {
				t.Fatal("taken, and unreadable")
			}
			before := len(p.rest) - len(rest)
			again = append(again, p.rest[:before-len(item)]...)
			again = append(again, item...)
			p.rest = rest
			count++
		}
		if uint64(count) != p.books.Position() || int64(count) > wanted || !bytes.Equal(again, answer) {
			t.Fatalf("%d items of %d, at %d: %x of %x", count, wanted, p.books.Position(), again, answer)
		}
		if item, _, ok := cutItem(binary.AppendUvarint(nil, uint64(count))); ok != (count == 0) || len(item) > 0 {
			t.Fatal("an item without its bytes")
		}
	})
}
