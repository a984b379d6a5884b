// Package server answers hosts' requests for one kind of need as the policy grants them: it
// authenticates the caller, looks up the grant, calls the kind, and commits decision, answer and
// audit row in one transaction before it answers. A process that serves hosts something else, such
// as their documents, takes the same steps with the methods of Request.
//
// Listen owns one goroutine for each address. Server.Serve owns the listener, one goroutine for
// each connection, the polls of the policy and of the revocation list, the sums of the audit log,
// and the Runner of its kind. It returns when all of them have ended.
package server
