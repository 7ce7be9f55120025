// Package pull is the accounting of a pull with demand, request(n): a consumer says how many items it can take, and its producer never sends more. Backpressure by credits
// is about requests and the server that serves them; this is about items, and the consumer that has to put them somewhere.
//
// The rules are those of Reactive Streams 1.0.4, where each is cited by its number, over calls of which any may be lost, repeated, or answered late. So a pull says from which
// position, and with that, that all before it has arrived: the producer keeps an item until then, and gives the same items for the same position however often it is asked. No
// item is lost, none is made, and a pull may be tried again like any read.
//
//	consumer: pull at 5, 3 items      ──>   producer: lets go of what is before 5,
//	          items 5 and 6           <──             waits until there is one, gives at most 3
//	          pull at 7, 1 item       ──>
//
// A [Consumer] and a [Producer] are values without IO, of one goroutine each. Package runtime has both on calls (Session.Pull, NewFeed).
package pull
