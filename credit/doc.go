// Package credit is the overload control of a server: how many requests the clients may send, and who may send them.
//
// The law is Breakwater's (Cho et al., "Overload Control for µs-scale RPCs with Breakwater", OSDI 2020, sections 3
// and 4). A server has a pool of C credits. Once per round trip, or per service where that is longer, it compares the queueing delay d_m with its target
// d_t: below it, C grows by max(alpha n_c, 1), where n_c is the number of clients; at or above it, C is multiplied by
// max(1 - beta (d_m - d_t)/d_t, 0.5). Whenever an answer leaves for a client, and only then, the credits of that
// client are set anew: to its demand d and an overcommitment of max((C - C_issued)/n_c, 1), but never to more than
// the pool has. So nothing is asked of a client and nothing is sent for the sake of control, unless a client that holds
// no credit and waits for no answer (a drained session) is to be woken up.
//
// The paper counts unused credits over TCP. Here a credit is an absolute, sequenced limit on the running number of
// requests that a session may ever send, so that loss, duplication and reordering of updates heal by themselves. Of
// each session the [Ledger] knows
//
//	sent   the highest `next` seen: the number that the client will give to its next request
//	p      received and not answered yet
//	u      limit - sent, the unused credits; never below zero
//	W      u + p, its window: what it may have at the server at once
//
// and C_issued is the sum of W over the sessions. For each answer, with W and C_issued taken before it is closed and
// p' = p - 1:
//
//	C_oc = max(floor((C - C_issued) / n_c), 1)
//	C_issued < C:  W' = min(p' + d + C_oc, W + C - C_issued)
//	C_issued > C:  W' = min(p' + d + C_oc, W - 1)
//	C_issued = C:  W' = min(p' + d + C_oc, W)
//	W' = 0 and the answer is no rejection: W' = C_oc (the floor of the authors' artifact)
//	W' is clamped to [p', slots], limit' = sent + W' - p', and seq grows by one if the limit changed.
//
// Every answer counts alike: success, failure, rejection, expiry, a cancelled request. A request that is lost leaves
// the sums when the client's next `next` passes its number, and enters them again should it arrive after all.
//
// Seven things differ from what was published, each can be set back, and each was decided by experiment, in the simulator and on the wire
// (see [BreakwaterConfig]):
//
//	Headroom    the pool does not grow while a larger one could change nothing
//	CatchUp     below the target, growth resumes from what is issued: a pool in debt kept the server idle
//	Recovery    a pool that was cut goes back fast to where it was, while clients wait and the queue is short
//	Unfair      a session that has no more than its share keeps it, however much others hold; see fairWindow
//	FloorDelay  the floor holds only below the target: above it, answers take credits back before the door has to
//	IdleCounts  the steps of the pool are reckoned from the credits at work, and not from those that lie idle
//	Uninvited   clients are told what share of the calls without a credit they may send all the same; see Inviter
//
// The last one is for many clients: where each call is of another one, nobody holds a credit when he calls, and what is asked and told for each call costs
// more than the call's own packets. Possession is enforced all the same. A request without a credit is given one when it arrives ([Ledger.Invite]), if the
// door is open and its session has nothing else at the server; so what can come in at once is bounded by the door, and what a client can take by one.
//
// The [Controller] owns the pool and the law of W'; the Ledger owns the sessions and is the same for every scheme.
// Nothing here reads a clock, starts a goroutine, logs, or draws a random number; nothing is safe for concurrent use:
// the one owner is the dispatcher.
package credit
