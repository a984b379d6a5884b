// Package server answers hosts' requests for one kind of need. It authenticates the caller, looks
// up the grant in the policy, and calls the kind. It then commits the decision, the answer and the
// audit row in one transaction before it responds. A process that serves other data to hosts, such
// as their documents, takes the same steps with the methods of Request.
//
// Listen owns one goroutine for each address. Server.Serve owns the listener, one goroutine for
// each connection, and the Runner of its kind. It also polls the policy and the revocation list,
// and writes the sums of the audit log. Serve returns when all its goroutines have ended.
package server
