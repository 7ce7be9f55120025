package dispatcher

import (
	"reflect"
	"testing"
	"time"
)

// TestSnapshotAdd looks at every field that there is, so that a new one cannot be forgotten: it adds up, unless it is among those of which the largest counts,
// or a mean.
func TestSnapshotAdd(t *testing.T) {
	largest := map[string]bool{"Delay": true, "DelayMax": true, "TargetDelay": true, "RTT": true}
	var one, two Snapshot
	fill(reflect.ValueOf(&one).Elem(), 2)
	fill(reflect.ValueOf(&two).Elem(), 3)
	one.Add(&two)
	var look func(name string, v reflect.Value)
	look = func(name string, v reflect.Value) {
		switch {
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				look(v.Type().Field(i).Name, v.Field(i))
			}
		case v.Kind() == reflect.Array:
			for i := range v.Len() {
				look(name, v.Index(i))
			}
		case name == "Service": // checked below
		default:
			want := int64(5)
			if largest[name] {
				want = 3
			}
			if got := number(v); got != want {
				t.Errorf("%s of 2 and 3 is %d", name, got)
			}
		}
	}
	look("", reflect.ValueOf(one))
	busy, idle := Snapshot{Service: 10 * time.Microsecond}, Snapshot{Service: 30 * time.Microsecond}
	busy.Completed, idle.Completed = 3, 1
	busy.Add(&idle)
	if busy.Service != 15*time.Microsecond {
		t.Errorf("mean service %v of three requests of 10us and one of 30us", busy.Service)
	}
	var nobody Snapshot
	nobody.Add(&Snapshot{})
	if nobody.Service != 0 {
		t.Errorf("mean service %v without a request", nobody.Service)
	}
}

// fill sets all numbers in a value.
func fill(v reflect.Value, to int64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), to)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), to)
		}
	case reflect.Uint64:
		v.SetUint(uint64(to))
	default:
		v.SetInt(to)
	}
}

func number(v reflect.Value) int64 {
	if v.CanUint() {
		return int64(v.Uint())
	}
	return v.Int()
}
