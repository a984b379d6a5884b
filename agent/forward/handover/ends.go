package handover

// Ends collects functions to be called when an operation ends. It takes the place of defer if an
// operation may continue after the goroutine that began it has returned. It must not be used by
// several goroutines at once.
type Ends struct {
	all  []func()
	kept bool
}

// Add adds a function. Run calls the functions in reverse order.
func (e *Ends) Add(f func()) { e.all = append(e.all, f) }

// Keep makes a later Close do nothing, so that the operation can continue. The caller must call Run
// when the operation has ended.
func (e *Ends) Keep() { e.kept = true }

// Go continues the operation in a new goroutine, which calls f and then Run. A later Close does
// nothing.
func (e *Ends) Go(f func()) {
	e.Keep()
	go func() {
		defer e.Run()
		f()
	}()
}

// Close calls Run, unless Keep or Go was called before. It is meant to be deferred by the goroutine
// that begins the operation.
func (e *Ends) Close() {
	if !e.kept {
		e.Run()
	}
}

// Run calls all added functions, the last one first.
func (e *Ends) Run() {
	for i := len(e.all) - 1; i >= 0; i-- {
		e.all[i]()
	}
}
