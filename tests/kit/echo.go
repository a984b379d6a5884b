package kit

import (
	"io"
	"net"
)

// Accept accepts connections from l until l is closed. It calls serve with each connection in a
// goroutine, and then closes the connection.
func Accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			serve(conn)
		}()
	}
}

// Echo reads from conn and sends all bytes back, until conn is closed.
func Echo(conn net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}) // splice(2) would take a pipe for each connection
}
