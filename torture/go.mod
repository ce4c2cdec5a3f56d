module github.com/submitonce/submitonce/torture

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/submitonce/submitonce v0.0.0
)

replace github.com/submitonce/submitonce => ../
