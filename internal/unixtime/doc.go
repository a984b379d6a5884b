// Package unixtime represents wall clock time as Unix seconds, as in documents, reports and files.
package unixtime
