echo one

echo two
