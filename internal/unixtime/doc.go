// Package unixtime represents wall clock times as Unix seconds, the form that documents, reports
// and state files contain.
package unixtime
