package admit

import (
	"math"
	"testing"
	"time"
)

// sent is one of two methods that share a door, and how much of it arrives for one of the other.
type sent struct {
	weight, cost, each int
	level              Level
}

// contend has methods arrive in turn, at a delay that refuses what is sheddable and nothing else, and returns the share of all units that each had let in.
func contend(d *Door, delay time.Duration, rounds int, methods []*Method, of []sent) []float64 {
	units, all := make([]float64, len(of)), 0.
	now := at(0)
	for range rounds {
		for i := range of {
			for range of[i].each {
				now = now.Add(us)
				if d.decide(now, Arrival{Delay: delay, Method: methods[i], Level: of[i].level}).OK {
					units[i] += float64(of[i].cost)
					all += float64(of[i].cost)
				}
			}
		}
	}
	for i := range units {
		units[i] /= all
	}
	return units
}

func methodsOf(of []sent) (all []*Method) {
	for _, s := range of {
		m := NewMethod(MethodConfig{Weight: s.weight, Cost: s.cost})
		all = append(all, &m)
	}
	return all
}

// between is a delay at which SheddablePlus passes.
const between = 50 * us

// TestWeights: what each method has let in goes by its weight, in units, as long as it sends as much.
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		name string
		of   []sent
		want []float64 // of all
	}{
		{"alone", []sent{{1, 1, 1, Unset}}, []float64{1}},
		{"even", []sent{{1, 1, 10, Unset}, {1, 1, 3, Unset}}, []float64{0.5, 0.5}},
		{"three to one", []sent{{3, 1, 10, Unset}, {1, 1, 10, Unset}}, []float64{0.75, 0.25}},
		{"none is one", []sent{{2, 1, 10, Unset}, {0, 1, 10, Unset}}, []float64{2. / 3, 1. / 3}},
		{"no weights", []sent{{0, 1, 10, Unset}, {0, 1, 3, Unset}}, []float64{10. / 13, 3. / 13}},
		{"one hundred times the cost", []sent{{1, 1, 200, Unset}, {1, 100, 4, Unset}}, []float64{0.5, 0.5}},
		{"who sends least sets the pace while the queue is long", []sent{{1, 1, 10, Unset}, {9, 1, 10, Unset}, {1, 1, 1, Unset}}, []float64{1. / 11, 9. / 11, 1. / 11}},
		{"a lower level is not shared with", []sent{{1, 1, 30, Critical}, {1, 1, 10, SheddablePlus}}, []float64{0.75, 0.25}},
		{"nor is the highest shared", []sent{{1, 1, 30, CriticalPlus}, {1, 1, 10, CriticalPlus}}, []float64{0.75, 0.25}},
		{"each level by itself", []sent{{1, 1, 30, SheddablePlus}, {1, 1, 10, SheddablePlus}}, []float64{0.5, 0.5}},
	} {
		// Without floors, which let a few in beside their shares.
		d := NewDoor(DoorConfig{Target: 80 * us, Levels: LevelsConfig{Floor: -1}})
		methods := methodsOf(c.of)
		contend(&d, between, 500, methods, c.of)
		got := contend(&d, between, 500, methods, c.of)
		for i := range got {
			// Within the slack, and the look back: a request of a hundred units is a thirtieth of what is known.
			if math.Abs(got[i]-c.want[i]) > 0.03 {
				t.Errorf("%s: %.3f, want %.3f", c.name, got, c.want)
				break
			}
		}
	}
}

// TestWeightsWhileTheQueueIsShort: nobody is refused, however far beyond its share.
func TestWeightsWhileTheQueueIsShort(t *testing.T) {
	of := []sent{{1, 1, 100, Unset}, {1000, 1, 1, Unset}}
	d := NewDoor(DoorConfig{Target: 80 * us})
	contend(&d, 40*us, 200, methodsOf(of), of)
	if n := d.Counters(); n.RefusedAll() != 0 {
		t.Errorf("%+v", n)
	}
	contend(&d, 40*us+1, 1, methodsOf(of), of)
	if n := d.Counters(); n.Refused[ReasonShare] == 0 || n.Refused[ReasonShare] != n.RefusedAll() {
		t.Errorf("%+v", n)
	}
}

// TestWeightsForget: a method whose rival has gone is alone after two looks back, and what was let in long ago does not count.
func TestWeightsForget(t *testing.T) {
	d := NewDoor(DoorConfig{Target: 80 * us, Levels: LevelsConfig{Floor: -1}})
	of := []sent{{1, 1, 1, Unset}, {1, 1, 1, Unset}}
	methods := methodsOf(of)
	contend(&d, 0, 5000, methods, of)
	alone := func() (refused uint64) {
		before := d.Counters().Refused[ReasonShare]
		contend(&d, between, weightsForget, methods[:1], of[:1])
		return d.Counters().Refused[ReasonShare] - before
	}
	if first, second, third := alone(), alone(), alone(); first == 0 || second == weightsForget || third != 0 {
		t.Errorf("refused %d, then %d, then %d", first, second, third)
	}
	if alone(); d.weights.levels[Critical].weights != 1 {
		t.Errorf("weights of %v are in", d.weights.levels[Critical].weights)
	}
}

// TestWeightsReturn: what is refused behind the door has had nothing.
func TestWeightsReturn(t *testing.T) {
	d := NewDoor(DoorConfig{Target: 80 * us})
	of := []sent{{1, 1, 1, Unset}, {1, 1, 1, Unset}}
	methods := methodsOf(of)
	for range 1000 {
		a := Arrival{Method: methods[0]}
		if !d.decide(at(0), a).OK {
			t.Fatal("refused")
		}
		d.Return(&a)
	}
	contend(&d, 0, 10, methods, of)
	if d.decide(at(0), Arrival{Delay: between, Method: methods[0]}); d.Counters().Refused[ReasonShare] != 0 {
		t.Error("it is beyond its share")
	}
}

// TestUnitsAreLearnt: floors and shares go by the work of a method where none says what its requests cost, and by what they say where one does.
func TestUnitsAreLearnt(t *testing.T) {
	d := NewDoor(DoorConfig{Target: 80 * us})
	cheap, batch := NewMethod(MethodConfig{}), NewMethod(MethodConfig{})
	cheap.Age.Sample(10 * us)
	batch.Age.Sample(ms)
	for _, c := range []struct {
		name  string
		m     *Method
		units int
	}{{"cheap", &cheap, 100}, {"batch", &batch, 10_000}, {"no method", nil, 1}} {
		if got := d.units(&Arrival{Method: c.m}); got != c.units {
			t.Errorf("%s: %d units, want %d", c.name, got, c.units)
		}
	}
	unknown, said := NewMethod(MethodConfig{}), NewMethod(MethodConfig{Cost: 7})
	if got := d.units(&Arrival{Method: &unknown}); got != 1 {
		t.Errorf("nothing is learnt: %d units", got)
	}
	if got := d.units(&Arrival{Method: &said}); got != 7 {
		t.Errorf("said: %d units", got)
	}
	if got := d.units(&Arrival{Method: &batch}); got != 1 || batch.Cost() != 1 {
		t.Errorf("beside one that says a cost: %d units", got)
	}
}

// TestFloorIsOfWork: a sheddable method of expensive requests has its 2 % of the work that is let in, and not of the requests.
func TestFloorIsOfWork(t *testing.T) {
	d := NewDoor(DoorConfig{Target: 80 * us})
	of := []sent{{0, 0, 1000, Critical}, {0, 0, 100, Sheddable}}
	methods := methodsOf(of)
	methods[0].Age.Sample(10 * us)
	methods[1].Age.Sample(ms)
	contend(&d, between, 100, methods, of)
	// 100,000 of 10 us each: 1 s of work, of which 2 % of the whole are about 20 ms.
	if in := d.Counters().Admitted - 100_000; in < 19 || in > 25 {
		t.Errorf("%d sheddable ones were let in", in)
	}
}
