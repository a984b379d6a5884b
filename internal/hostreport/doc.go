// Package hostreport defines the report that a host sends to the provider of its documents.
package hostreport
