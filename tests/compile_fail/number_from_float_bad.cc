// expect: conversion from .float. to non-scalar type
#include "numerics/bf16.h"

locket::numerics::Bf16 use(float x) {
  const locket::numerics::Bf16 value = x;
  return value;
}
