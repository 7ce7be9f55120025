package admit

// Weights shares a server that has too much to do between its methods, by their weights. What a method has let in beyond its share counts as Sheddable, so that it is
// refused while the others still pass; and while the queue is short, nobody is.
//
// It is fair queueing (Demers, Keshav and Shenker, "Analysis and Simulation of a Fair Queueing Algorithm", SIGCOMM 1989) without a queue of its own, and so with an account of the past in
// the place of an order of departure. Shares are of units, so a method of expensive requests has no more for that. They are of the methods that have sent something lately:
// one that sends less than its share leaves the rest to the others, who have it at the shorter delay. Each level is shared by itself, so that nobody is shed for the sake of
// a lower level, and CriticalPlus is not shared.
//
// It is off until a method that has a weight is seen; then one that has none weighs 1. It reads no clock: what it knows is of the last thousand or two arrivals.
type Weights struct {
	on     bool
	levels [levelCount]weighed
}

// weighed is what is shared of one level.
type weighed struct {
	shares   []*share
	units    float64 // let in lately
	weights  float64 // of those who have sent something lately
	arrivals int     // since the last look back
}

// Shares is what Weights keeps of one method; it belongs to one door.
type Shares struct {
	weight float64 // 0 = it says none
	levels [levelCount]share
}

type share struct {
	weight       float64
	units        float64 // let in lately
	listed       bool
	active, seen bool // it has sent something lately, and since the last look back
}

const (
	// WeightMax bounds a weight: beyond that, the others as good as starve.
	WeightMax = 1000
	// weightsForget is how many arrivals are looked back on: what was let in before them counts half, and so on.
	weightsForget = 1024
	// weightsSlack is how much more than its share a method may have. Two that both send too much stand at their shares, and each would be beyond its own half of the time;
	// then refusals, and not credits, would hold them there. (200 clients each, 1.5 times the capacity each: of the method with cheap requests 21 % were refused without it, 1.5 %
	// so; 1/8 gave the other one 6 points more than its half.)
	weightsSlack = 1. / 32
)

// newShares is that of a method with a weight; 0 = it says none.
func newShares(weight int) Shares { return Shares{weight: float64(min(max(weight, 0), WeightMax))} }

// Beyond counts an arrival, and reports whether its method has had more than its share.
func (w *Weights) Beyond(s *Shares, level Level) bool {
	if s.weight > 0 {
		w.on = true
	}
	if !w.on || level >= CriticalPlus {
		return false
	}
	of, at := &w.levels[level], &s.levels[level]
	if of.arrivals++; of.arrivals > weightsForget {
		of.lookBack()
	}
	at.seen = true
	if !at.active {
		at.weight = max(s.weight, 1)
		of.activate(at)
	}
	return at.units*of.weights > (1+weightsSlack)*of.units*at.weight
}

// Admitted books units of a method that were let in; less than zero, if they were refused after all.
func (w *Weights) Admitted(s *Shares, level Level, units int) {
	of, at := &w.levels[level], &s.levels[level]
	if at.listed {
		after := max(at.units+float64(units), 0)
		of.units += after - at.units
		at.units = after
	}
}

// forget is for when units begin to mean something else.
func (w *Weights) forget() {
	for i := range w.levels {
		w.levels[i].units = 0
		for _, s := range w.levels[i].shares {
			s.units = 0
		}
	}
}

func (w *weighed) activate(s *share) {
	if !s.listed {
		s.listed = true
		w.shares = append(w.shares, s)
	}
	s.active = true
	w.weights += s.weight
}

// lookBack halves what was let in, and leaves those out that have sent nothing since the last time.
func (w *weighed) lookBack() {
	w.arrivals, w.units, w.weights = 0, 0, 0
	for _, s := range w.shares {
		s.active, s.seen = s.seen, false
		s.units /= 2
		w.units += s.units
		if s.active {
			w.weights += s.weight
		}
	}
}
