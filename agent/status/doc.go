// Package status reports the activity of a forwarder to programs and to people. Programs get the
// report as JSON over HTTP on a Unix socket (GET /status), people get it as tables, and Prometheus
// gets it as metrics. At another socket, the package ends open sessions on order.
package status
