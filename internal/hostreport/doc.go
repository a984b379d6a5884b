// Package hostreport defines the report on its own state that a host sends to the provider of its
// documents.
package hostreport
