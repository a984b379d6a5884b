// Package spiffe defines the SPIFFE IDs of a cluster's nodes, services and users, and the host
// names with which programs call services.
package spiffe
