// Package graph draws a cluster: its hosts with their services and users, the roles through which
// principals reach services, and the providers.
//
// Access is drawn as it is granted, from principals to roles and from roles to services. The number
// of edges is then that of definitions and not that of pairs.
package graph
