//go:build linux

package xsk

// The rings' own methods, for the test beside their slow twin.

func NewProducer[T entry](memory RingMemory[T]) *producer[T] { r := newProducer(memory); return &r }
func NewConsumer[T entry](memory RingMemory[T]) *consumer[T] { r := newConsumer(memory); return &r }

func (r *producer[T]) Room(want uint32) uint32      { return r.room(want) }
func (r *producer[T]) Put(value T)                  { r.put(value) }
func (r *producer[T]) PutAll(values []T)            { r.putAll(values) }
func (r *producer[T]) Publish()                     { r.publish() }
func (r *producer[T]) Unread() uint32               { return r.unread() }
func (r *consumer[T]) Available(want uint32) uint32 { return r.available(want) }
func (r *consumer[T]) Get() T                       { return r.get() }
func (r *consumer[T]) GetAll(into []T)              { r.getAll(into) }
func (r *consumer[T]) Release()                     { r.release() }
