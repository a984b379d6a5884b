// Package server answers hosts' requests for one kind of need as the policy grants them: it
// authenticates the caller, looks up the grant, lets the kind decide, and commits
// decision, answer and audit row in one transaction before it answers. What serves hosts something
// else, such as their documents, takes the same steps by the methods of Request.
package server
