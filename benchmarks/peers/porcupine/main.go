// Porcupine on histories in JSON Lines: one answer and its processor time for each history.
//
// A line is {"model": ..., "operations": [[client, name, key, first, second, result, invoked,
// returned], ...]}. Values are integers, -1 for none, and strings for maps; a call that did not
// return has the result null and the return -1. The first argument is the limit of time in seconds.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math"
	"os"
	"runtime"
	"sort"
	"strconv"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

type input struct {
	name, key, text string
	first, second   int
}

type output struct {
	value   int
	text    string
	unknown bool
}

type history struct {
	Model      string              `json:"model"`
	Operations [][]json.RawMessage `json:"operations"`
}

var seed = maphash.MakeSeed()

func hashText(state interface{}) uint64 { return maphash.String(seed, state.(string)) }

func hashNumber(state interface{}) uint64 { return uint64(state.(int)) * 0x9E3779B97F4A7C15 }

func byKey(operations []porcupine.Operation) [][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, one := range operations {
		key := one.Input.(input).key
		parts[key] = append(parts[key], one)
	}
	keys := make([]string, 0, len(parts))
	for key := range parts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	result := make([][]porcupine.Operation, 0, len(keys))
	for _, key := range keys {
		result = append(result, parts[key])
	}
	return result
}

func register(state, in, out interface{}) (bool, interface{}) {
	held, call, answer := state.(int), in.(input), out.(output)
	switch call.name {
	case "read":
		return answer.unknown || answer.value == held, held
	case "write":
		return true, call.first
	}
	if held == call.first {
		return answer.unknown || answer.value == 1, call.second
	}
	return answer.unknown || answer.value == 0, held
}

func textMap(state, in, out interface{}) (bool, interface{}) {
	held, call, answer := state.(string), in.(input), out.(output)
	switch call.name {
	case "get":
		return answer.unknown || answer.text == held, held
	case "put":
		return true, call.text
	}
	return true, held + call.text
}

func wholeMap(state, in, out interface{}) (bool, interface{}) {
	held, call := state.(map[string]string), in.(input)
	legal, after := textMap(held[call.key], in, out)
	if call.name == "get" || !legal {
		return legal, held
	}
	copied := make(map[string]string, len(held)+1)
	for key, value := range held {
		copied[key] = value
	}
	copied[call.key] = after.(string)
	return true, copied
}

func sameMap(one, other interface{}) bool {
	first, second := one.(map[string]string), other.(map[string]string)
	if len(first) != len(second) {
		return false
	}
	for key, value := range first {
		if other, found := second[key]; !found || other != value {
			return false
		}
	}
	return true
}

func set(state, in, out interface{}) (bool, interface{}) {
	held, call, answer := state.(int), in.(input), out.(output)
	switch call.name {
	case "add":
		return answer.unknown || answer.value == 1-held, 1
	case "remove":
		return answer.unknown || answer.value == held, 0
	}
	return answer.unknown || answer.value == held, held
}

func multiset(state, in, out interface{}) (bool, interface{}) {
	held, call, answer := state.(int), in.(input), out.(output)
	switch call.name {
	case "add":
		return true, held + 1
	case "remove":
		if held == 0 {
			return answer.unknown || answer.value == 0, held
		}
		return answer.unknown || answer.value == 1, held - 1
	}
	return answer.unknown || answer.value == held, held
}

// Values are below 256: a state is a string of bytes.
func queue(state, in, out interface{}) (bool, interface{}) {
	held, call, answer := state.(string), in.(input), out.(output)
	if call.name == "enqueue" {
		return true, held + string([]byte{byte(call.first)})
	}
	if held == "" {
		return answer.unknown || answer.value == -1, held
	}
	return answer.unknown || answer.value == int(held[0]), held[1:]
}

func stack(state, in, out interface{}) (bool, interface{}) {
	held, call, answer := state.(string), in.(input), out.(output)
	if call.name == "push" {
		return true, held + string([]byte{byte(call.first)})
	}
	if held == "" {
		return answer.unknown || answer.value == -1, held
	}
	last := len(held) - 1
	return answer.unknown || answer.value == int(held[last]), held[:last]
}

func priorityQueue(state, in, out interface{}) (bool, interface{}) {
	held, call, answer := state.(string), in.(input), out.(output)
	if call.name == "insert" {
		at := sort.Search(len(held), func(i int) bool { return int(held[i]) > call.first })
		return true, held[:at] + string([]byte{byte(call.first)}) + held[at:]
	}
	if held == "" {
		return answer.unknown || answer.value == -1, held
	}
	return answer.unknown || answer.value == int(held[0]), held[1:]
}

func counter(state, in, out interface{}) (bool, interface{}) {
	held, call, answer := state.(int), in.(input), out.(output)
	switch call.name {
	case "read":
		return answer.unknown || answer.value == held, held
	case "increment":
		return true, held + 1
	}
	return answer.unknown || answer.value == held, held + call.first
}

func lock(state, in, out interface{}) (bool, interface{}) {
	held, call, answer := state.(int), in.(input), out.(output)
	switch call.name {
	case "acquire":
		return held < 0, call.second
	case "release":
		return held == call.second, -1
	}
	if held < 0 {
		return answer.unknown || answer.value == 1, call.second
	}
	return answer.unknown || answer.value == 0, held
}

type step = func(state, in, out interface{}) (bool, interface{})

func model(name string) porcupine.Model {
	texts := map[string]step{
		"queue": queue, "stack": stack, "priority-queue": priorityQueue, "map": textMap,
	}
	if step, found := texts[name]; found {
		made := porcupine.Model{
			Init: func() interface{} { return "" }, Step: step, Hash: hashText,
		}
		if name == "map" {
			made.Partition = byKey
		}
		return made
	}
	switch name {
	case "map together":
		return porcupine.Model{
			Init: func() interface{} { return map[string]string{} }, Step: wholeMap, Equal: sameMap,
		}
	case "set":
		return porcupine.Model{
			Init: func() interface{} { return 0 }, Step: set, Hash: hashNumber, Partition: byKey,
		}
	case "multiset":
		return porcupine.Model{
			Init: func() interface{} { return 0 }, Step: multiset, Hash: hashNumber, Partition: byKey,
		}
	case "counter":
		return porcupine.Model{
			Init: func() interface{} { return 0 }, Step: counter, Hash: hashNumber,
		}
	case "lock":
		return porcupine.Model{
			Init: func() interface{} { return -1 }, Step: lock, Hash: hashNumber,
		}
	}
	return porcupine.Model{
		Init: func() interface{} { return -1 }, Step: register, Hash: hashNumber,
	}
}

func number(raw json.RawMessage) int {
	value, err := strconv.Atoi(string(raw))
	if err != nil {
		return -1
	}
	return value
}

func text(raw json.RawMessage) string {
	var value string
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}
	return value
}

func operations(rows [][]json.RawMessage) []porcupine.Operation {
	result := make([]porcupine.Operation, len(rows))
	for i, row := range rows {
		returned := int64(number(row[7]))
		unknown := returned < 0
		if unknown {
			returned = math.MaxInt64
		}
		result[i] = porcupine.Operation{
			ClientId: number(row[0]),
			Input: input{
				name: text(row[1]), key: string(row[2]), text: text(row[3]),
				first: number(row[3]), second: number(row[4]),
			},
			Output: output{value: number(row[5]), text: text(row[5]), unknown: unknown},
			Call:   int64(number(row[6])),
			Return: returned,
		}
	}
	return result
}

func processorTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

func main() {
	limit, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		panic(err)
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var one history
		if err := json.Unmarshal(line, &one); err != nil {
			panic(err)
		}
		calls := operations(one.Operations)
		chosen := model(one.Model)
		runtime.GC()
		before := processorTime()
		answer := porcupine.CheckOperationsTimeout(chosen, calls, time.Duration(limit*1e9))
		fmt.Printf("%s %.4f\n", answer, processorTime()-before)
	}
}
