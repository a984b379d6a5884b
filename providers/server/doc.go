// Package server answers hosts' requests for one kind of need as the policy grants them: it
// authenticates the caller, looks up the grant, lets the kind decide, and commits
// decision, answer and audit row in one transaction before it answers. What serves hosts something
// else, such as their documents, takes the same steps by the methods of Request.
//
//	step       checks                                                         refuses with
//	identify   chain, time, exactly one SPIFFE ID, of a node                   untrusted, clock
//	receive    strict JSON of 64 KiB, the idempotency key is the request's own malformed, key-mismatch
//	device     the device key signed the connection                            device-key, policy-behind
//	list       certificate and device key are not revoked                      revoked, list-behind
//	grant      caller, need, parameters and generation are in the policy       not-granted, mismatch, rotated, policy-behind
//	record     a request that was answered before has the same answer
//	kind       decides: an answer and changes of state, nothing done yet
//	commit     changes, record and audit row in one transaction                begins again with the grant when the state changed
//
// A crash before the commit changed nothing. After a crash behind it, the host repeats the request
// and receives the recorded answer. A node that reads documents which it has receives 304
// without a transaction.
//
// Listen owns one goroutine for each address. Server.Serve owns the listener, one goroutine for
// each connection, the polls of the policy and of the revocation list, the sums of the audit log,
// and the Runner of its kind. It returns when all of them have ended.
package server
