// Package middleware is overload control for servers that cannot change their transport: the server's policies of credit/admit in front of any http.Handler,
// and, in the nested module grpcadmit, in front of a gRPC server. It needs neither root nor AF_XDP, and links the standard library only.
//
//	control := middleware.New(middleware.Config{SLO: 100 * time.Millisecond})
//	http.ListenAndServe(addr, control.Handler(mux))
//
// At most Config.Permits requests are in handlers at once; the others wait in a queue that is bounded in time, and what could not be answered in time is
// refused at once, with 503 (429 where a rate is bounded), Retry-After, and a header that says not to retry where a retry would add to the overload.
//
// What credits do is not here: a client that knows nothing of them sends all it has, and each refusal costs the server what it takes to read a request
// and to answer it. Where both ends can be changed, package runtime keeps that work away.
//
// # Headers
//
// Requests may say how much they matter, how often they were tried, and how long their callers wait. The names are those that proxies use already, where there are any:
//
//	X-Criticality                    critical-plus, critical, sheddable-plus or sheddable; anything else is the route's level
//	X-Envoy-Attempt-Count            1 for the first attempt
//	X-Envoy-Expected-Rq-Timeout-Ms   how long the caller waits; the context's deadline counts as well, the earlier one
//
// The urgency of RFC 9218 (Priority) is not read as criticality: browsers set it by what they load, to order the answers of one client, and it would have a
// server shed the images of all users first. Whoever can reach the server can claim to be critical: set Config.Level where that matters.
package middleware
