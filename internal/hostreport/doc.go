// Package hostreport defines the report that a host sends to the provider of its documents. The
// report describes the state of the host.
package hostreport
