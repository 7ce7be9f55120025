package admit

// shedForgets is how many arrivals are looked back on: what came before them counts half, and so on.
const shedForgets = 1024

// Shed refuses a share of the cost that arrives, the lowest level first: at a share of 0.3, with four levels that are a quarter each, all that is Sheddable
// and a fifth of SheddablePlus. It is an operator's lever, so no level keeps a floor. It reads no clock: what it knows of the levels is of the last
// thousand or two that arrived. The zero Shed refuses nothing.
type Shed struct {
	share float64
	seen  [levelCount]float64 // cost that arrived, by level
	all   float64
	count int // of arrivals, halved with the sums
	coin  coin
}

// NewShed makes one that refuses nothing yet. The seed decides who is refused.
func NewShed(seed uint64) Shed { return Shed{coin: coin(seed)} }

// Set sets the share to refuse, 0 to 1; others count as the nearer end.
func (s *Shed) Set(share float64) { s.share = min(max(share, 0), 1) }

// Share is what Set set.
func (s *Shed) Share() float64 { return s.share }

// Admit decides about one arrival.
func (s *Shed) Admit(level Level, cost int) bool {
	if !(s.share > 0) {
		return true
	}
	level = level.or()
	s.seen[level] += float64(cost)
	s.all += float64(cost)
	if s.count++; s.count >= 2*shedForgets {
		s.count /= 2
		for i := range s.seen {
			s.seen[i] /= 2
		}
		s.all /= 2
	}
	left := s.share * s.all // to be refused of this level and of those above
	for i := Sheddable; i < level; i++ {
		left -= s.seen[i]
	}
	return !s.coin.within(left / s.seen[level])
}
