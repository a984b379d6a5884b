// Package status reports the activity of a forwarder: as JSON over HTTP on a Unix socket (GET
// /status), as tables for people, and as metrics for Prometheus.
package status
