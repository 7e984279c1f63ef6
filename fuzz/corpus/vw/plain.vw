1 |f a b:2
-1 |f c d:0.5
1 2.5 'tag|ns:2 x y:-1e3 |other z
