package frame

// What moves many frames writes the sums once for all of them. Frame by frame, each would wait for the sums that the one before it wrote.

// ContainsAll reports whether Contains is true of every packet of a batch. It is quick where that is so.
func (p *Pool) ContainsAll(batch []Desc) bool {
	total, size := uint64(len(p.frames))*p.size, p.size
	var short uint64 // its sign says that one of the differences was below zero, or an address so high that they cannot tell
	for i := range batch {
		addr, length := uint64(batch[i].Addr), uint64(batch[i].Len)
		short |= size - (addr&(size-1) + length)
		short |= (total - 1 - addr) | addr
	}
	return int64(short) >= 0
}

// TakeAll is Take of count frames, of which there must be as many free. What it returns is valid until a frame goes back into the pool.
func (p *Pool) TakeAll(count int, to Owner, by Holder) []Addr {
	rest := len(p.free) - count
	taken := p.free[rest:]
	p.free = p.free[:rest]
	frames, shift := p.frames, p.shift&63
	was, is, from := stateOf(Free, by), stateOf(to, by), 0
	for i, addr := range taken {
		number := uint64(addr) >> shift
		if frames[number] != was {
			p.held[was.holder()][Free] -= i - from
			was, from = frames[number], i
		}
		frames[number] = is
	}
	p.held[was.holder()][Free] -= count - from
	p.held[by][to] += count
	p.counts[Free] -= count
	p.counts[to] += count
	return taken
}

// MoveAll is Move of the frames around the addresses of a batch, and returns how many were not refused: their descriptors are the first of the
// batch then, in the old order.
func (p *Pool) MoveAll(batch []Desc, from, to Owner) int {
	run := p.moveRun(batch, from, to)
	if run == len(batch) {
		return run
	}
	kept := run
	for rest := batch[run:]; len(rest) > 0; rest = rest[max(run, 1):] {
		run = p.moveRun(rest, from, to)
		if run == 0 {
			p.refuse(rest[0].Addr, from, to)
		}
		kept += copy(batch[kept:], rest[:run])
	}
	return kept
}

// moveRun moves the first frames of a batch, as far as they are the given owner's and of one queue, and returns how many.
func (p *Pool) moveRun(batch []Desc, from, to Owner) int {
	if len(batch) == 0 {
		return 0
	}
	frames, shift := p.frames, p.shift&63
	number := uint64(batch[0].Addr) >> shift
	if number >= uint64(len(frames)) || frames[number].owner() != from || from == Free {
		return 0
	}
	was := frames[number]
	is, run := stateOf(to, was.holder()), len(batch)
	for i := range batch {
		number := uint64(batch[i].Addr) >> shift
		if number >= uint64(len(frames)) || frames[number] != was {
			run = i
			break
		}
		frames[number] = is
	}
	held := &p.held[was.holder()]
	held[from] -= run
	held[to] += run
	p.counts[from] -= run
	p.counts[to] += run
	if to == Free {
		top := len(p.free)
		p.free = p.free[:top+run]
		free, low := p.free[top:], Addr(p.size-1)
		for i := range free {
			free[i] = batch[i].Addr &^ low
		}
	}
	return run
}
