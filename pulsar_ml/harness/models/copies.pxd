cpdef object copied(object value)
cpdef tuple changing(object value, object like, tuple its)
cpdef object copied_but(object value, tuple names)
cpdef long piece_weight(object item) except -1
cpdef long weight(object value) except -1
cpdef object freeze(object value)
