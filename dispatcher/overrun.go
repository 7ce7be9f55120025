package dispatcher

import "time"

// overrun is by how much longer requests wait than the work that is queued before them should take the CPUs. These have more to do than handlers: where they
// take packets in and send answers themselves, it is 1.18 for 10 us of service in the simulator. The zero value knows nothing, and is 1.
type overrun struct{ waited, expected float64 } // sums that decay, in nanoseconds

const (
	overrunKeep = 255. / 256 // of the sums, at each sample
	overrunMax  = 2.         // a CPU that was away, or handlers that block, must not close the door
)

// sample takes how long a request waited in the queue, and what was expected when it came.
func (o *overrun) sample(waited, expected time.Duration) {
	if expected > 0 {
		o.waited = o.waited*overrunKeep + float64(max(waited, 0))
		o.expected = o.expected*overrunKeep + float64(expected)
	}
}

func (o *overrun) factor() float64 {
	if o.expected == 0 {
		return 1
	}
	return min(max(o.waited/o.expected, 1), overrunMax)
}

// mayWait is how long a request that arrives now will have to wait: the queued work with what it overruns by. Who would be late then is told at once: it would
// learn the same after all the wait, near its deadline, and keep a place in the queue until then.
func (d *Dispatcher) mayWait() time.Duration {
	return time.Duration(float64(d.queueWork()) * d.server.overrun.factor())
}
