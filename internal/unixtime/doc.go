// Package unixtime encodes wall clock times as Unix seconds, as in documents, reports and state
// files.
package unixtime
