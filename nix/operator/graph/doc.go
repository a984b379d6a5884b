// Package graph draws a cluster: its hosts with the services and users on them,
// who reaches what through which roles, and who provides.
//
// Access is drawn as it is granted, from principals to roles and from roles to
// services, so that there are as many edges as definitions and not as many as
// pairs.
package graph
