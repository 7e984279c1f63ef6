1 |f a:1e39 b
1 |f a:1e400
1 |f a:1e-400 b:-0 c:1e-50
1 |f a:nan
1 |f a:1e308 a:1e308
1 |n:1e300 a:1e300
1 |f a:1 a:-1
