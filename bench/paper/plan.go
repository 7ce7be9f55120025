package paper

import (
	"fmt"
	"math"
	"slices"

	"github.com/stillwater-rpc/stillwater/bench/paper/published"
)

// Plan is what is to be simulated, and what of it stands where in the figures.
type Plan struct {
	Points []Point // each once, in the order of the figures that need them
	Cells  []Cell  // figure by figure: the published rows in their order, then the curves that the paper does not have
	Size   Size
}

// NewPlan plans the figures and schemes named; empty means all. Unknown names are errors of ErrOptions.
func NewPlan(names []string, schemes []Scheme, size Size) (*Plan, error) {
	if err := size.validate(); err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := findFigure(name); err != nil {
			return nil, err
		}
	}
	for _, s := range schemes {
		if _, err := ParseScheme(string(s)); err != nil {
			return nil, err
		}
	}
	rows, err := published.Rows()
	if err != nil {
		return nil, err
	}
	b := &planner{plan: &Plan{Size: size}, schemes: schemes, known: map[string]int{}}
	for _, f := range figures {
		if len(names) > 0 && !slices.Contains(names, f.name) {
			continue
		}
		if err := b.figure(f, rows); err != nil {
			return nil, err
		}
	}
	if len(b.plan.Points) == 0 {
		return nil, fmt.Errorf("%w: %v of %v have nothing to simulate", ErrOptions, schemes, names)
	}
	return b.plan, nil
}

// planner builds a plan.
type planner struct {
	plan    *Plan
	schemes []Scheme       // empty: all
	known   map[string]int // from a point's key to its index
	places  []Cell         // of the figure's published values, those of schemes that nobody asked for too
}

// figure adds a figure: its rows, then what stands beside them.
func (b *planner) figure(f figure, rows []published.Row) error {
	begin := len(b.plan.Cells)
	b.places = nil
	for i := range rows {
		if rows[i].Figure == f.name {
			if err := b.row(f, &rows[i]); err != nil {
				return fmt.Errorf("published line %d: %w", rows[i].Line, err)
			}
		}
	}
	if f.name == "F11" {
		return b.settings(f)
	}
	return b.beside(f, b.plan.Cells[begin:])
}

// wanted reports whether a scheme is to be shown.
func (b *planner) wanted(s Scheme) bool { return len(b.schemes) == 0 || slices.Contains(b.schemes, s) }

// row adds the cell of a published row. Those of schemes that nobody asked for are left out; what is no run says so.
func (b *planner) row(f figure, r *published.Row) error {
	c := Cell{
		Figure: r.Figure, Panel: r.Panel, XName: r.XName, XText: r.X, X: baseX(*r), Metric: rowMetric(*r), Point: -1,
		Row: r, Published: r.Base(), Error: r.BaseError(),
	}
	var found bool
	if c.Scheme, c.Parts, found = legend(r.Scheme); !found {
		c.Why = "a line of the drawing, not a run"
		b.plan.Cells = append(b.plan.Cells, c)
		return nil
	}
	b.places = append(b.places, c)
	if !b.wanted(c.Scheme) {
		return nil
	}
	if r.Panel == "27sets" {
		c.Why = "the paper does not say which settings this point has; compared as a cloud"
		b.plan.Cells = append(b.plan.Cells, c)
		return nil
	}
	if err := b.add(f, c); err != nil || r.Panel != "best" {
		return err
	}
	// The tuned points of F11 say two things: X is a result too.
	c.Metric, c.Published = Throughput, c.X
	return b.add(f, c)
}

// add gives a cell its point, and the plan the cell.
func (b *planner) add(f figure, c Cell) error {
	p, err := f.setUp(c.Panel, c.XName, c.XText, c.X, b.plan.Size)
	if err != nil {
		return err
	}
	p.Scheme, p.Parts = c.Scheme, c.Parts
	p.Tuning = tuned(p.Scheme, p.Service, p.SLO, p.Clients)
	if c.XName == published.AlphaBeta {
		if p.Tuning.Breakwater.Alpha, p.Tuning.Breakwater.Beta, err = published.ParseAlphaBeta(c.XText); err != nil {
			return err
		}
	}
	if c.XName == published.TimeS {
		var within bool
		if c.Window, within = windowEnd(c.X, b.plan.Size); !within {
			c.Why = fmt.Sprintf("stages of %v end before it", b.plan.Size.Stage)
			c.Window = 0
			b.plan.Cells = append(b.plan.Cells, c)
			return nil
		}
	}
	c.Point = b.point(p)
	b.plan.Cells = append(b.plan.Cells, c)
	return nil
}

// point returns the index of a run, which it adds if it is new.
func (b *planner) point(p Point) int {
	p.Warmup = b.plan.Size.warmup(p)
	key := p.key()
	index, found := b.known[key]
	if !found {
		index = len(b.plan.Points)
		b.known[key] = index
		b.plan.Points = append(b.plan.Points, p)
	}
	return index
}

// place is where a curve has a value.
type place struct {
	panel  string
	x      float64 // 0 where text tells it
	text   string
	metric Metric
}

func (c Cell) place() place {
	if math.IsNaN(c.X) {
		return place{c.Panel, 0, c.XText, c.Metric}
	}
	return place{c.Panel, c.X, "", c.Metric}
}

// beside adds, at every place where the figure has a value of a scheme, the same of the schemes that the figure lacks. rows are the published values to be shown.
func (b *planner) beside(f figure, rows []Cell) error {
	type spot struct {
		place
		curve string
	}
	var places []Cell
	seen, drawn := map[place]bool{}, map[spot]bool{}
	for _, c := range rows {
		drawn[spot{c.place(), c.curve()}] = true
	}
	for _, c := range b.places {
		// Runs without control sit at demands of their own, where nothing else was run.
		odd := c.Scheme == None && slices.Contains(oddDemands, c.X/1e6)
		if c.Scheme != "" && !odd && !seen[c.place()] {
			seen[c.place()] = true
			places = append(places, c)
		}
	}
	for _, scheme := range f.others {
		if !b.wanted(scheme) {
			continue
		}
		variants := f.variants
		if !scheme.hasCredits() {
			variants = []Parts{{}}
		}
		for _, parts := range variants {
			for _, c := range places {
				c.Scheme, c.Parts, c.Row, c.Published, c.Error = scheme, parts, nil, math.NaN(), math.NaN()
				if drawn[spot{c.place(), c.curve()}] {
					continue
				}
				c.Window, c.Why = 0, ""
				if err := b.add(f, c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
