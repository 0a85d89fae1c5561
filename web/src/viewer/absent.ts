/** Stands for a decoder that the desk never needs. */
export default null;
