1|f a
1 1 1 |f a
'only |f a
|f a
 1 |f a
1 -1 |f a
1 1 'a b|f
'|f a
x |f a
2 |f
0 |f a
-1 |f a
