// Package hostreport has what a host reports of itself to the provider of its documents.
package hostreport
