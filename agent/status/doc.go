// Package status reports what a forwarder does: HTTP with JSON on a Unix socket, GET /status, tables that people read,
// and metrics for Prometheus.
package status
