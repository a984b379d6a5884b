// Package spiffe has the SPIFFE IDs of a cluster, and the names that programs call services by.
package spiffe
