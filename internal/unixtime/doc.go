// Package unixtime has wall clock time as documents, reports and files have it: Unix seconds.
package unixtime
