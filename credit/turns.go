package credit

import "math/bits"

// list is a first-in first-out list of sessions, linked through their entries.
type list struct {
	head, tail Session
	count      uint64
}

// Weights are powers of two, so that the sessions of one weight are one list and a choice between lists takes a few steps, however many
// sessions wait.
const weightClasses = 8

// class is the list of a weight.
func class(weight uint8) int { return bits.Len8(weight) - 1 }

// queue holds drained sessions by their weight. Those of one weight have their turns in the order in which they came. Between weights turns are
// shared in proportion to weight times number, so that each session's rate goes by its weight.
type queue struct {
	lists [weightClasses]list
	turns [weightClasses]int64 // what each is owed
	count uint64
}

// next is the list whose turn it is; nil = nobody waits. It takes the turn: ask only for a session that is then woken up.
//
// It is weighted round robin without bursts, as nginx has it between servers: all get what they are due of one turn, and the one that is owed most
// pays for it. Who was woken up and is not back yet has had its part of what is due, or those that are often woken up would get less than their
// weight says.
func (q *queue) next(woken *[weightClasses]uint64) *list {
	if q.count == 0 {
		return nil
	}
	best, total := -1, int64(0)
	for c := range q.lists {
		n := q.lists[c].count
		switch {
		case n == q.count:
			q.turns = [weightClasses]int64{} // the only ones: nobody is owed anything
			return &q.lists[c]
		case n == 0:
			q.turns[c] = 0
			continue
		}
		due := int64(n+woken[c]) << c
		q.turns[c] += due
		total += due
		if best < 0 || q.turns[c] > q.turns[best] {
			best = c
		}
	}
	q.turns[best] -= total
	return &q.lists[best]
}
