package main

import "context"

// figures are what one measurement came to, by name.
type figures map[string]float64

// contender is one of those that take turns.
type contender struct {
	name    string
	measure func(context.Context) (figures, error)
}

// table holds the rounds of every figure of every contender, in order.
type table map[string]map[string][]float64

// of are the rounds of one figure. A name that nothing was measured under is a fault of the program, and an empty list
// would hide it until something divides by it.
func (t table) of(contender, figure string) []float64 {
	values := t[contender][figure]
	if len(values) == 0 {
		panic("nothing was measured as " + figure + " of " + contender) // shows: names from this package's source
	}
	return values
}

// turns measures all contenders once in each round, forwards in one and backwards in the next: a machine that others use
// is never equally fast twice, and what grows busier or quieter over a run must not favour the one that comes first.
func (l *lab) turns(ctx context.Context, contenders ...contender) (table, error) {
	t := table{}
	for _, c := range contenders {
		t[c.name] = map[string][]float64{}
	}
	for round := range l.rounds {
		l.say("%s, round %d of %d", l.group().Name, round+1, l.rounds)
		for i := range contenders {
			if round%2 == 1 {
				i = len(contenders) - 1 - i
			}
			c := contenders[i]
			f, err := c.measure(ctx)
			if err != nil {
				return nil, err
			}
			for name, value := range f {
				t[c.name][name] = append(t[c.name][name], value)
			}
		}
	}
	return t, nil
}
