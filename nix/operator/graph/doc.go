// Package graph draws a cluster: its hosts with their services and users, the roles through which
// principals reach services, and the providers.
//
// Access is drawn as the topology grants it: edges lead from principals to roles, and from roles to
// services. The picture then has one edge for each definition, instead of one for each pair of
// principal and service.
package graph
