let y;
