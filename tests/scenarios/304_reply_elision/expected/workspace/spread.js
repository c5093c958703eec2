f({
  ...rest,
});
