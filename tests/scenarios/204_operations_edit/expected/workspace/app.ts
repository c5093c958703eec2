const x = 43;
console.log("Value:", x);
