// Package spiffe defines the SPIFFE IDs of a cluster's nodes, services, users and vertices, and the
// host names with which programs call services.
package spiffe
