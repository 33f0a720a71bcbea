// Compiles patterns with RE2, as implemented in Go: reads a JSON array of patterns, writes a JSON array of errors.
package main

import (
	"encoding/json"
	"os"
	"regexp"
)

func main() {
	var patterns []string
	if err := json.NewDecoder(os.Stdin).Decode(&patterns); err != nil {
		panic(err)
	}
	wrong := []string{}
	for _, pattern := range patterns {
		if _, err := regexp.Compile(pattern); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(wrong); err != nil {
		panic(err)
	}
}
