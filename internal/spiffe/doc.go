// Package spiffe defines the SPIFFE IDs of a cluster and the names by which programs call services.
package spiffe
