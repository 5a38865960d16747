var _ truegoldjson.Number
var _ truegoldos.File
var _ truegoldstrings.Builder
var _ truegoldbufio.Reader
var _ truegoldreflect.Value
var _, _, _ = truegoldfmt.Sprint, truegoldstrconv.Itoa, truegoldutf16.Encode
func main() {}
