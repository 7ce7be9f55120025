package admit

// InService bounds how many requests of a method are in their handlers at once, so that a method that waits for a slow device does not have all workers.
// The zero InService has no bound, and counts nothing.
type InService struct{ max, now int }

// NewInService makes one; zero or less is no bound.
func NewInService(bound int) InService { return InService{max: max(bound, 0)} }

// Bounded reports whether there is a bound.
func (s *InService) Bounded() bool { return s.max > 0 }

// Max is the bound, and Now how many are in.
func (s *InService) Max() int { return s.max }

// Now is the number of those in service.
func (s *InService) Now() int { return s.now }

// Full reports whether no more may start.
func (s *InService) Full() bool { return s.max > 0 && s.now >= s.max }

// Start counts one more in. The caller has asked Full.
func (s *InService) Start() {
	if s.max > 0 {
		s.now++
	}
}

// Done counts one less. One that was not started is no error of the books: it is not counted.
func (s *InService) Done() {
	if s.now > 0 {
		s.now--
	}
}
